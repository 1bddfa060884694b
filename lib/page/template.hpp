// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace reckon {

/// The one template of all pages. The policy forbids scripts, and everything from elsewhere.
inline constexpr std::string_view k_page_template = R"(<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<header>
<h1>{title}</h1>
<p class="dim">{subtitle}</p>
</header>
<div class="verdict {tone}">
{verdict}</div>
<nav>
{links}</nav>
<main>
{sections}</main>
<footer>written by reckon {version}</footer>
</body>
</html>
)";

/// Colours of curves are Okabe and Ito's, which eyes with any colour deficiency tell apart.
inline constexpr std::string_view k_page_style = R"(
:root {
  color-scheme: light dark;
  --ground: #fff; --text: #1b1f24; --dim: #5b6470; --line: #d5dae0; --band: #f3f5f7;
  --good: #11713a; --bad: #b3261e; --warning: #8a5a00; --link: #0b57d0; --use: #4a90d9;
  --c0: #0072b2; --c1: #d55e00; --c2: #009e73; --c3: #b8558f; --c4: #b97f00; --c5: #3b95c9; --c6: #555;
}
@media screen and (prefers-color-scheme: dark) {
  :root {
    --ground: #14171a; --text: #e4e7ea; --dim: #9aa4ae; --line: #353c43; --band: #1d2226;
    --good: #66d08f; --bad: #ff8a80; --warning: #f0bf5a; --link: #8ab4f8; --use: #3f7fc4;
    --c0: #56a9e0; --c1: #ff8a3d; --c2: #2fc79b; --c3: #e29ac6; --c4: #f0b429; --c5: #8fd0f5; --c6: #bbb;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0 auto; padding: 0 1rem 3rem; max-width: 76rem; background: var(--ground); color: var(--text);
  font: 16px/1.45 system-ui, sans-serif; overflow-wrap: anywhere; -webkit-text-size-adjust: 100%;
}
h1 { font-size: 1.5rem; margin: 1.2rem 0 0; }
h2 { font-size: 1.2rem; margin: 2.2rem 0 .6rem; padding-bottom: .2rem; border-bottom: 1px solid var(--line); }
h3 { font-size: 1rem; margin: 1.3rem 0 .4rem; }
h3 .dim { font-weight: normal; }
p { margin: .35rem 0; }
header p, footer { font-size: .85rem; }
footer { margin-top: 3rem; color: var(--dim); }
.strong { font-weight: 600; } .dim { color: var(--dim); } .good { color: var(--good); }
.bad { color: var(--bad); } .warning { color: var(--warning); }
.verdict { margin: 1rem 0; padding: .7rem 1rem; border-left: .4rem solid var(--line); background: var(--band); color: var(--text); }
.verdict.good { border-color: var(--good); } .verdict.bad { border-color: var(--bad); }
.verdict.warning { border-color: var(--warning); }
.verdict > p:first-child { font-size: 1.15rem; font-weight: 600; }
nav { display: flex; flex-wrap: wrap; gap: .2rem 1.1rem; }
a { color: var(--link); }
.scroll { overflow-x: auto; margin: .4rem 0; }
table { border-collapse: collapse; font-size: .875rem; font-variant-numeric: tabular-nums; }
th, td { padding: .2rem .7rem .2rem 0; text-align: left; vertical-align: top; white-space: nowrap; overflow-wrap: normal; }
th { color: var(--dim); font-weight: 600; border-bottom: 1px solid var(--line); vertical-align: bottom; }
tr + tr > td { border-top: 1px solid var(--band); }
.number { text-align: right; }
.sentence { white-space: normal; min-width: 11rem; overflow-wrap: anywhere; }
pre { overflow-x: auto; font: .8rem/1.35 ui-monospace, monospace; margin: .4rem 0; }
details { margin: .5rem 0; }
summary { cursor: pointer; color: var(--link); }
figure { margin: .6rem 0 1.2rem; min-width: 0; }
figcaption { font-size: .875rem; margin-bottom: .3rem; }
.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 24rem), 1fr)); gap: 0 2rem; }
.figures .wide { grid-column: 1 / -1; } figure p { font-size: .875rem; }
.heat td { min-width: 3.2rem; padding: .25rem .4rem; text-align: center; border: 1px solid var(--ground); line-height: 1.15; }
.heat small { display: block; font-size: .7rem; }
.heat th { border: 0; padding: .2rem .4rem; vertical-align: middle; }
.heat td.odd { outline: 3px solid var(--bad); outline-offset: -3px; }
.ramp { display: inline-block; width: 7rem; height: .7rem; vertical-align: baseline; }
.bar { display: inline-block; height: .75rem; background: var(--use); vertical-align: middle; }
.bar.second { background: var(--c1); } .bar.full { background: var(--warning); }
.chart { width: 100%; max-width: 60rem; }
.bars { min-width: 8rem; width: 40%; line-height: 1.1; }
td.bars .bar { display: block; margin: .15rem 0; min-width: 1px; }
svg { display: block; width: 100%; height: auto; max-width: 36rem; overflow: visible; }
svg text { fill: var(--text); font: 12px system-ui, sans-serif; }
svg .grid { stroke: var(--line); stroke-width: 1; } svg .dim { fill: var(--dim); }
svg .wide { stroke-width: 2; } svg .fit { stroke-dasharray: 2 3; stroke-width: 1.2; } svg .bound { stroke-dasharray: 7 4; }
svg .range { fill: var(--use); opacity: .25; }
svg.squares text { font-size: var(--size); } .squares rect { shape-rendering: crispEdges; }
.lanes svg { min-width: 44rem; max-width: none; }
.legend { display: flex; flex-wrap: wrap; gap: .1rem 1.1rem; list-style: none; margin: .2rem 0; padding: 0; font-size: .85rem; }
.key { display: inline-block; width: .8rem; height: .8rem; margin-right: .35rem; vertical-align: -.05rem; }
.k0 { background: var(--c0); } .k1 { background: var(--c1); } .k2 { background: var(--c2); } .k3 { background: var(--c3); }
.k4 { background: var(--c4); } .k5 { background: var(--c5); } .k6 { background: var(--c6); } .ku { background: var(--use); }
.s0 { stroke: var(--c0); } .s1 { stroke: var(--c1); } .s2 { stroke: var(--c2); } .s3 { stroke: var(--c3); }
.s4 { stroke: var(--c4); } .s5 { stroke: var(--c5); } .s6 { stroke: var(--c6); }
.f0 { fill: var(--c0); } .f1 { fill: var(--c1); } .f2 { fill: var(--c2); } .f3 { fill: var(--c3); }
.f4 { fill: var(--c4); } .f5 { fill: var(--c5); } .f6 { fill: var(--c6); }
.line { fill: none; stroke-width: 1.6; } .many { opacity: .35; stroke-width: 1; }
.heat td, .bar, .key, .ramp, .verdict { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
@media screen and (max-width: 40rem) {
  table { font-size: .75rem; }
  th, td { padding-right: .4rem; }
  .heat th { padding: .2rem; } .heat td { min-width: 0; padding: .25rem .15rem; } .heat small { font-size: .6rem; }
  pre { font-size: .7rem; }
  svg text { font-size: 15px; }
  table :is(th, td):first-child { position: sticky; left: 0; background: var(--ground); }
}
/* On a narrow screen columns take what they need of its width; in a table of many, sentences and bars have lines of
   their own. */
@supports (grid-template-columns: subgrid) {
  @media screen and (max-width: 40rem) {
    table:not(.heat) { display: grid; grid-template-columns: repeat(var(--columns), auto); }
    table:not(.heat) tbody { display: contents; }
    table:not(.heat) tr { display: grid; grid-template-columns: subgrid; grid-column: 1 / -1; }
    table:not(.heat) :is(th, td) { white-space: normal; }
    th { align-self: end; }
    .sentence { min-width: 0; overflow-wrap: break-word; }
    .bars, .sentence:is(:first-child:nth-last-child(n + 4), :last-child:nth-child(n + 4)) {
      grid-column: 1 / -1; width: 0; min-width: 100%;
    }
    .bars, .sentence:last-child:nth-child(n + 4) { order: 1; }
    .bars, .sentence:last-child:nth-child(n + 4), .sentence:first-child:nth-last-child(n + 4) ~ td { border: 0; padding-top: 0; }
    .bars:empty, .sentence:empty:is(:first-child:nth-last-child(n + 4), :last-child:nth-child(n + 4)) { display: none; }
  }
}
@media print {
  :root { color-scheme: light; }
  body { max-width: none; padding: 0; font-size: 10pt; }
  nav { display: none; }
  .scroll, pre { overflow: visible; }
  td:not(.number) { white-space: normal; }
  h2, h3, figcaption, summary { break-after: avoid; }
  figure, tr { break-inside: avoid; }
}
)";

} // namespace reckon
