"""The paper's figures, one kind a file: blue is filtering, red is smoothing."""
