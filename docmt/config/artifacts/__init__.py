"""Artifacts of a study, each with files, stage, inputs and parameters of its command.

Every stage is a module with one class, which extends the preceding stage's class. Therefore a declaration can call the
declarations of its inputs. Rule inputs, parameters and fingerprints, stage targets, the files that `docmt status` looks
for, and the report's input files are all derived from these declarations.
"""
