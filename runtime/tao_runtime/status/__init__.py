"""Write and read what a run says about itself while it runs."""
