"""What tool calls and their answers say of files; shapes are known, not harnesses."""
