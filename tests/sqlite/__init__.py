"""What is true of SQLite only: the file, its locks, plain SQL, and connections of the application."""
