"""Event streams: one stream, many streams, batches for a device, and files in and out."""
