"""The JSON forms that every front end shares. Nothing here imports typer or rich."""
