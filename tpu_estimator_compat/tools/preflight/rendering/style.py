"""The style sheet of the page."""

CSS = """
:root { color-scheme: light dark; --ground: #fff; --raised: #f6f7f9; --text: #1c2330;
  --soft: #5b6472; --edge: #d5dae1; --bad: #b3261e; --good: #1b6e3c; --open: #8a5a00;
  --bad-ground: #fdecea; --good-ground: #e7f5ec; --open-ground: #fdf3dd;
  --blue: #3b6fc4; --pale: #8fb1e6; --teal: #2a9d8f; --orange: #e08a3c; --violet: #8458b3;
  --gray: #b4bbc6; --on-blue: #fff; --mark: rgba(0, 0, 0, .35); }
@media (prefers-color-scheme: dark) {
  :root { --ground: #14181f; --raised: #1d232c; --text: #e4e8ee; --soft: #a0a9b6;
    --edge: #353d4a; --bad: #ff8a80; --good: #7ddba0; --open: #f2c063;
    --bad-ground: #3a1d1c; --good-ground: #16301f; --open-ground: #352a12;
    --blue: #5b8fe6; --pale: #3d5f99; --teal: #2f9e90; --orange: #d98236; --violet: #9a70c9;
    --gray: #59626f; --on-blue: #0b0f16; --mark: rgba(0, 0, 0, .45); } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.5rem; max-width: 68rem; background: var(--ground);
  color: var(--text); font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.5rem; margin: 0 0 .25rem; }
h2 { font-size: 1.15rem; margin: 2.2rem 0 .6rem; }
h3 { font-size: 1rem; margin: 1.4rem 0 .3rem; }
p { margin: .3rem 0; }
code, pre, .code { font-family: ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace;
  font-size: .87em; overflow-wrap: anywhere; }
.soft { color: var(--soft); }
.cards { display: grid; grid-template-columns: repeat(auto-fill, minmax(15rem, 1fr)); gap: .8rem;
  margin: 1rem 0; padding: 0; list-style: none; }
.card { border: 1px solid var(--edge); border-left: 5px solid; border-radius: 6px;
  padding: .6rem .9rem; background: var(--raised); }
.card strong { display: block; font-size: 1.05rem; }
.fails { border-left-color: var(--bad); } .fails .verdict, h2.fails { color: var(--bad); }
.fits { border-left-color: var(--good); } .fits .verdict { color: var(--good); }
.unknown { border-left-color: var(--open); }
.unknown .verdict, h2.might { color: var(--open); } .might { border-left-color: var(--open); }
.card .verdict { font-weight: 600; }
.finding { border: 1px solid var(--edge); border-left-width: 5px; border-radius: 6px;
  padding: .6rem .9rem; margin: .7rem 0; }
.finding.fails { border-left-color: var(--bad); background: var(--bad-ground); }
.finding.might { border-left-color: var(--open); background: var(--open-ground); }
.finding h3 { margin: 0 0 .2rem; }
.kind { font-size: .8rem; font-weight: 600; color: var(--soft); }
pre { margin: .3rem 0; padding: .45rem .7rem; background: var(--ground); overflow-x: auto;
  border: 1px solid var(--edge); border-radius: 4px; white-space: pre-wrap; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
.over { fill: none; stroke: var(--bad); stroke-width: 2; stroke-dasharray: 5 3; }
th, td { text-align: left; padding: .22rem .7rem; border-bottom: 1px solid var(--edge);
  vertical-align: top; }
th { font-weight: 600; } tbody th { font-weight: 400; color: var(--soft); white-space: nowrap; }
tbody th.part { padding-left: 1.7rem; }
.number-cell { text-align: right; white-space: nowrap; }
.bar-cell { width: 34%; min-width: 7rem; }
svg.bar { display: block; margin-top: .5rem; overflow: visible; }
.patterns { position: absolute; }
.ground { fill: var(--raised); stroke: var(--edge); }
.even { opacity: .84; }
pre code { font-size: inherit; }
.caption { margin: .8rem 0 -.9rem; font-size: .9rem; font-weight: 600; }
.fill-arguments, .fill-variables { fill: var(--blue); } .fill-slots { fill: var(--pale); }
.fill-outputs, .fill-input { fill: var(--teal); } .fill-temporaries { fill: var(--orange); }
.fill-code { fill: var(--violet); } .fill-rest { fill: var(--gray); } .mark { fill: var(--mark); }
.with-outputs { fill: url(#pattern-outputs); } .with-slots { fill: url(#pattern-slots); }
.with-temporaries { fill: url(#pattern-temporaries); } .with-rest { fill: url(#pattern-rest); }
line.hbm { stroke: var(--text); stroke-width: 3; }
text { font: 12px system-ui, sans-serif; fill: var(--text); }
text.hbm { font-weight: 600; } text.number { font-weight: 600; fill: var(--on-blue); }
.legend { display: flex; flex-wrap: wrap; gap: .2rem 1.3rem; margin: .1rem 0 .6rem; padding: 0;
  list-style: none; font-size: .9rem; }
.legend svg { vertical-align: -2px; margin-right: .4rem; }
summary { cursor: pointer; margin: .4rem 0; }
@media print { .finding, .card { break-inside: avoid; } }
"""
"""Colours are defined once for light and once for dark. Where a colour tells things apart, so
does a word or a pattern."""
