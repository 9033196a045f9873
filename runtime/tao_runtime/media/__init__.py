"""Read annotation files and videos: which records, which frames, what size, how many tokens."""
