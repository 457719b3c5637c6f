"""What measurements say side by side: differences, their certainty, their fairness. Pure."""
