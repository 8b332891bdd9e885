"""Artifacts of a study, each with files, stage, inputs and parameters of its command.

Every stage is a module of functions. A function declares the artifacts of a rule, and calls the functions that declare
its inputs. Rule inputs, parameters and fingerprints, stage targets, the files that `docmt status` looks for, and the
report's input files are all derived from these declarations.
"""
