"""Tables and explanations of Sia's round."""
