"""LSP handlers: params in, one engine call, LSP types out; one file per feature."""
