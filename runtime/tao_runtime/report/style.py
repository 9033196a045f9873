"""The page's style sheet: light, dark and paper. Every text keeps a contrast of 4.5 to 1 or more."""

from __future__ import annotations

STYLE = """
:root {
  color-scheme: light dark;
  --page: #f6f7f9; --surface: #ffffff; --ink: #14181f; --soft: #56606e; --rule: #dde2e9; --grid: #e6eaf0;
  --train: #1f5fd0; --validation: #b4470a; --good: #14713a; --bad: #b02a2a; --chip: #eef1f6; --heat: 46%;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #0f1217; --surface: #171b22; --ink: #e8ecf2; --soft: #9aa5b4; --rule: #2a313c; --grid: #252c36;
    --train: #7fb0ff; --validation: #ffa766; --good: #6fd39a; --bad: #ff9c93; --chip: #232a34; --heat: 42%;
  }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink); font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto,
  "Helvetica Neue", "DejaVu Sans", sans-serif; overflow-wrap: anywhere; }
main { max-width: 1120px; margin: 0 auto; padding: 32px 24px 64px; }
h1 { font-size: 28px; line-height: 1.2; margin: 0 0 4px; letter-spacing: -.01em; }
h2 { font-size: 19px; margin: 40px 0 12px; }
h3 { font-size: 14px; margin: 0 0 6px; display: flex; flex-wrap: wrap; gap: 2px 8px; align-items: baseline;
  justify-content: space-between; }
p { margin: 0 0 8px; }
.sub, .legend, .byline { color: var(--soft); font-size: 12.5px; font-weight: 400; }
.sub { overflow-wrap: anywhere; }
.legend { margin: 8px 0 0; }
.num, .num-inline, .tile-value { font-variant-numeric: tabular-nums; }
.panel { background: var(--surface); border: 1px solid var(--rule); border-radius: 10px; padding: 16px 18px; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(200px, 1fr)); gap: 12px; margin-top: 24px; }
.tile { background: var(--surface); border: 1px solid var(--rule); border-radius: 10px; padding: 14px 18px; }
.tile-name { color: var(--soft); font-size: 13px; overflow-wrap: anywhere; }
.tile-value { font-size: 32px; font-weight: 650; line-height: 1.25; letter-spacing: -.02em; }
.tile-note { color: var(--soft); font-size: 12.5px; }
.curves { display: grid; grid-template-columns: 2fr 1fr; gap: 12px; }
.curves .side { display: grid; gap: 12px; align-content: space-between; }
.curves h3 { justify-content: flex-start; font-weight: 600; }
svg.chart { width: 100%; height: auto; display: block; }
.tick { font-size: 12px; fill: var(--soft); font-variant-numeric: tabular-nums; }
.grid { stroke: var(--grid); stroke-width: 1; }
.axis { stroke: var(--rule); stroke-width: 1; }
.line { fill: none; stroke-width: 2.25; stroke-linejoin: round; stroke-linecap: round; }
.line.faint { stroke-width: 1; opacity: .38; }
.line.train { stroke: var(--train); }
.line.validation { stroke: var(--validation); stroke-dasharray: 6 4; }
.line.neutral { stroke: var(--soft); }
.dot.train { fill: var(--train); }
.dot.validation { fill: var(--validation); stroke: var(--surface); stroke-width: 1.5; }
.dot.neutral { fill: var(--soft); }
.band { opacity: .16; }
.band.train { fill: var(--train); }
.band.neutral { fill: var(--soft); }
.key { display: inline-flex; align-items: center; gap: 6px; color: var(--soft); font-size: 12.5px; font-weight: 400; }
.key svg { width: 22px; height: 8px; }
.scroll { overflow-x: auto; }
.tile, .panel, .card, .curves > *, .matrices > *, .facts > * { min-width: 0; }
table { border-collapse: collapse; width: 100%; overflow-wrap: break-word; }
th, td { text-align: left; padding: 8px 10px; border-bottom: 1px solid var(--rule); vertical-align: middle; font-weight: 400; }
thead th { color: var(--soft); font-size: 12.5px; vertical-align: bottom; }
tbody th { font-weight: 600; }
tbody tr:last-child > * { border-bottom: 0; }
.num { text-align: right; white-space: nowrap; }
caption { text-align: left; font-weight: 600; padding: 0 0 6px; }
.acc { display: flex; align-items: center; gap: 12px; }
.num-inline { min-width: 62px; font-weight: 600; white-space: nowrap; }
svg.strip { width: 190px; height: 23px; flex: none; }
.metrics tbody th { min-width: 170px; }
.whisker { stroke: var(--train); stroke-width: 7; opacity: .35; stroke-linecap: round; }
.chance { stroke: var(--validation); stroke-width: 2; }
.matrices { display: grid; grid-template-columns: repeat(auto-fit, minmax(330px, 1fr)); gap: 24px 28px; }
.matrix th, .matrix td { text-align: center; border: 0; padding: 6px 8px; }
.matrix tbody th, .matrix .axis-name { text-align: left; }
.matrix thead .axis-name { color: var(--soft); font-size: 12px; font-style: italic; }
.matrix thead th[colspan] { text-align: center; }
.matrix .cell { font-variant-numeric: tabular-nums; min-width: 52px; border: 2px solid var(--surface); }
.cell .sub { color: inherit; opacity: .85; font-size: 11.5px; line-height: 1.2; }
.cell.right { background: color-mix(in srgb, var(--train) calc(var(--share) * var(--heat)), var(--chip)); }
.cell.wrong { background: color-mix(in srgb, var(--validation) calc(var(--share) * var(--heat)), var(--chip)); }
.chip { background: var(--chip); border-radius: 99px; padding: 1px 9px; font-size: 12px; font-weight: 500; }
.kinds { list-style: none; display: flex; flex-wrap: wrap; gap: 6px 18px; padding: 0; margin: 0 0 14px; }
.cards { display: grid; grid-template-columns: repeat(auto-fill, minmax(320px, 1fr)); gap: 14px; }
.card { background: var(--surface); border: 1px solid var(--rule); border-radius: 10px; overflow: hidden; break-inside: avoid; }
.card-body { padding: 12px 14px 10px; overflow-wrap: anywhere; }
.frames { display: block; width: 100%; height: 92px; object-fit: contain; background: #0b0d11; }
.no-picture { height: 96px; display: grid; place-items: center; padding: 8px 14px; text-align: center; font-size: 12.5px;
  color: var(--soft); background: var(--chip); overflow: hidden; }
.question { font-size: 13.5px; }
.pair { display: grid; grid-template-columns: max-content 1fr; gap: 2px 12px; margin: 0 0 8px; font-size: 14px; }
.pair dt { color: var(--soft); }
.pair dd { margin: 0; font-weight: 600; }
.good { color: var(--good); }
.bad { color: var(--bad); }
.fault { border-left: 4px solid var(--rule); margin-bottom: 12px; break-inside: avoid; }
.fault.error { border-left-color: var(--bad); }
.fault.warning { border-left-color: var(--validation); }
.fault h3 { font-size: 15px; justify-content: flex-start; align-items: center; }
.fault .times { color: var(--soft); font-weight: 400; }
.fault ul { margin: 0 0 8px; padding-left: 18px; }
.fault .place { color: var(--soft); font-size: 13px; }
.fix { background: var(--chip); border-radius: 6px; padding: 8px 10px; margin: 4px 0; font-size: 13px; white-space: pre-wrap; }
.fix code { user-select: all; overflow-wrap: anywhere; font-family: ui-monospace, "DejaVu Sans Mono", monospace; }
.lead { margin: 12px 0; }
.panel + .fault, section + .fault { margin-top: 12px; }
.checks { overflow-wrap: anywhere; }
.checks th { width: 34%; vertical-align: top; }
.fault h3 + ul > li { margin-bottom: 2px; }
.chip.error { color: var(--bad); }
.chip.warning { color: var(--validation); }
.facts { display: grid; grid-template-columns: repeat(auto-fit, minmax(300px, 1fr)); gap: 20px 32px; }
.facts dl { display: grid; grid-template-columns: minmax(110px, max-content) 1fr; gap: 3px 14px; margin: 0; font-size: 13.5px; }
.facts dt { color: var(--soft); }
.facts dd { margin: 0; overflow-wrap: anywhere; font-variant-numeric: tabular-nums; }
footer { margin-top: 40px; border-top: 1px solid var(--rule); padding-top: 12px; }
@media screen and (max-width: 860px) {
  main { padding: 20px 14px 40px; }
  .curves { grid-template-columns: 1fr; }
  .curves .side { grid-template-columns: repeat(auto-fit, minmax(240px, 1fr)); }
}
@media print {
  :root { color-scheme: light; --page: #fff; --surface: #fff; --ink: #000; --soft: #444; --rule: #bbb; --grid: #ddd;
    --train: #1f5fd0; --validation: #b4470a; --good: #14713a; --bad: #b02a2a; --chip: #f0f2f5; }
  body { font-size: 12px; }
  main { max-width: none; padding: 0; }
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  h2 { break-after: avoid; margin-top: 24px; }
  .tiles { grid-template-columns: repeat(4, 1fr); }
  .tile-value { font-size: 24px; }
  .scroll { overflow: visible; }
  .metrics th, .metrics td, .labels th, .labels td { padding: 6px 5px; }
  .metrics tbody th .sub { display: none; }
  .matrices { grid-template-columns: 1fr 1fr; gap: 18px; }
  .metrics tbody th { min-width: 0; }
  svg.strip { width: 110px; }
  .acc { gap: 6px; }
  .num-inline { min-width: 50px; }
  .panel, .tile, table { break-inside: avoid; }
}
"""
