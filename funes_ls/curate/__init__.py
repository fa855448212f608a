"""Looking through what may be published, and deciding what stays here."""
