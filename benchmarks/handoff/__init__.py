"""What is left of a session after its context was cut: in the summary, in a handoff, by recall."""
