"""Pictures of streams and of what was imputed in them."""
