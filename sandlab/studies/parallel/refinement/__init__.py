"""What refinement depends on: studies that vary its training and its data."""
