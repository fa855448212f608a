"""How well lines are traced to the turns that wrote them, on sessions whose truth is known."""
