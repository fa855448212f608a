"""The write path: traces to turns to chunks to a memory; at its bottom the shared floor."""

import os

# What runs models and what speaks to a hub tell their makers of it unless these are set. They look
# once, when they are loaded: that is after this package, which all of this program imports.
for _name in ("ORT_DISABLE_TELEMETRY", "HF_HUB_DISABLE_TELEMETRY"):
    os.environ[_name] = "1"
