"""The commands. Importing these modules imports neither pydantic nor Rich: only the bodies do."""
