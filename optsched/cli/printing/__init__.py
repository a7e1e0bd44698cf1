"""What is printed: tables as data, the formats they take, and the streams that they go to."""
