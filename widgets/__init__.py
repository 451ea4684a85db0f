"""Inputs, views and confirmations for notebooks: data in, events out. The only package that may import ipywidgets."""
