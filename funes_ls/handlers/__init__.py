"""The language server's features: params in, one engine request, LSP types out."""
