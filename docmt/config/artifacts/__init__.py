"""Artifacts of a study, each with files, stage, inputs and parameters of its command.

One module and one class per stage. Each class extends that of the stage before it, so that a declaration names what it
is made from by calling its method. Inputs, parameters and fingerprints of the rules, the targets of each stage, what
`docmt status` looks for and what the report reads all follow from these declarations.
"""
