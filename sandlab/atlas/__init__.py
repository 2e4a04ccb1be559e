"""The atlas: a live page on which worlds, circuits, trainings and claims can be played with (`sandlab serve`)."""
