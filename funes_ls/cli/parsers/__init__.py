"""One function a command, by what they are for: each adds its parser to the command line."""
