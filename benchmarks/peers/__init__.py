"""Other ways to find a passage, beside ours: same rows, same questions, same machine, one run."""
