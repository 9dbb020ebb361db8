"""Pictures and a page to look at, drawn from plain data: nothing here needs more than events."""
