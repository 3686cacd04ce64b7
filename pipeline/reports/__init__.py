"""Reports: what leaves the pipeline.

``feed``    the published tables, and the nights that made them
``charts``  Vega-Lite charts drawn to SVG, with tooltips and no script
``page``    one self-contained HTML page a run, made from the published tables alone
"""
