"""The state of a study at a glance, from its plan and the files of its folder. Reads only, and never imports torch."""
