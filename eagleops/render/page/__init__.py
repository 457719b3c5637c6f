"""What every page that eagleops writes has in common: its style, its colours, how it is drawn."""
