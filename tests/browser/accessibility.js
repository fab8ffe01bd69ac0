// Read by accessibility.py, and evaluated in the page: each function returns plain data.
const CONTROLS = "a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex]"

// What a person finds an element by in a message.
const named = (e) => e.tagName.toLowerCase() + (e.id ? "#" + e.id : "")
  + (e.className && typeof e.className === "string" ? "." + e.className.trim().split(/\s+/).join(".") : "")
  + " " + JSON.stringify((e.getAttribute("aria-label") || e.textContent || e.value || "").trim().slice(0, 40))

const shown = (e) => e.checkVisibility({ opacityProperty: true, visibilityProperty: true })
  && e.getClientRects().length > 0

const nameOf = (e) => {
  const by = (e.getAttribute("aria-labelledby") || "").split(/\s+/).filter(Boolean)
  const texts = [e.getAttribute("aria-label"), ...by.map((id) => document.getElementById(id)?.textContent),
    ...[...(e.labels || [])].map((label) => label.textContent)]
  if (!["INPUT", "SELECT", "TEXTAREA"].includes(e.tagName)) {
    texts.push(e.textContent, ...[...e.querySelectorAll("img[alt], svg[aria-label]")]
      .map((inner) => inner.getAttribute("alt") || inner.getAttribute("aria-label")))
  } else if (["submit", "button"].includes(e.type)) texts.push(e.value)
  return texts.filter(Boolean).join(" ").trim()
}

const focusable = () => [...document.querySelectorAll(CONTROLS)].filter((e) => shown(e) && !e.disabled
  && e.tabIndex >= 0 && !e.closest("[inert]") && !(e.type === "radio" && !isChosen(e))).map(named)
// Of a group of radio buttons, Tab reaches the checked one, or else the first.
const isChosen = (e) => {
  const group = [...document.querySelectorAll("input[type=radio]")].filter((o) => o.name === e.name && o.form === e.form)
  return e === (group.find((o) => o.checked) || group[0])
}

// The next Tab begins at the top of the document, whatever had focus.
const toStart = () => {
  scrollTo(0, 0)
  document.body.tabIndex = -1
  document.body.focus({ preventScroll: true })
  document.body.removeAttribute("tabindex")
}

const focused = () => {
  const e = document.activeElement
  if (!e || e === document.body) return { element: "nothing", visible: true }
  const style = getComputedStyle(e), box = e.getBoundingClientRect()
  const drawn = (style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 1)
    || style.boxShadow !== "none"
  const inside = box.width > 0 && box.height > 0 && box.bottom > 0 && box.top < innerHeight
  return { element: named(e), visible: drawn && inside }
}

// Colours: [red, green, blue, alpha], each channel 0 to 1. The canvas knows every notation of CSS.
const canvas = Object.assign(document.createElement("canvas"), { width: 1, height: 1 })
const pen = canvas.getContext("2d", { willReadFrequently: true })
const colours = new Map()
const colour = (text) => {
  if (!colours.has(text)) {
    pen.clearRect(0, 0, 1, 1)
    pen.fillStyle = text
    pen.fillRect(0, 0, 1, 1)
    colours.set(text, [...pen.getImageData(0, 0, 1, 1).data].map((v) => v / 255))
  }
  return colours.get(text)
}
const over = (top, below) => [0, 1, 2].map((i) => top[i] * top[3] + below[i] * (1 - top[3])).concat(1)
const light = (c) => [0.2126, 0.7152, 0.0722].reduce((sum, share, i) =>
  sum + share * (c[i] <= 0.04045 ? c[i] / 12.92 : ((c[i] + 0.055) / 1.055) ** 2.4), 0)
const contrast = (a, b) => {
  const [high, low] = [light(a), light(b)].sort((x, y) => y - x)
  return (high + 0.05) / (low + 0.05)
}
const backgroundOf = (e) => {
  const layers = []
  for (let at = e; at; at = at.parentElement) layers.push(colour(getComputedStyle(at).backgroundColor))
  return layers.reverse().reduce((below, top) => over(top, below), colour("Canvas"))
}

const contrastFaults = () => {
  const found = new Set(), walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
  const seen = new Set()
  while (walker.nextNode()) {
    const e = walker.currentNode.parentElement
    if (seen.has(e) || !walker.currentNode.data.trim() || e.closest(":disabled, script, style, option")) continue
    seen.add(e)
    if (!shown(e)) continue
    const style = getComputedStyle(e), below = backgroundOf(e)
    const ink = over(colour(e.closest("svg") ? style.fill : style.color), below)
    const size = parseFloat(style.fontSize), bold = parseInt(style.fontWeight) >= 700
    const least = size >= 24 || (bold && size >= 18.66) ? 3 : 4.5
    const ratio = contrast(ink, below)
    if (ratio < least) found.add(`contrast ${ratio.toFixed(2)}, at least ${least}: ${named(e)}`)
  }
  return [...found]
}

const nameFaults = () => [...document.querySelectorAll(CONTROLS)]
  .filter((e) => shown(e) && !nameOf(e)).map((e) => "no label: " + e.outerHTML.slice(0, 120))
  .concat([...document.querySelectorAll("[tabindex]")].filter((e) => e.tabIndex > 0)
    .map((e) => "a positive tabindex: " + named(e)))

const headingFaults = () => {
  const levels = [...document.querySelectorAll("h1, h2, h3, h4, h5, h6")].filter(shown)
    .map((e) => [Number(e.tagName[1]), e])
  const found = levels.filter(([level], i) => level > (i ? levels[i - 1][0] : 0) + 1)
    .map(([, e]) => "a level of headings is left out before " + named(e))
  const first = levels.filter(([level]) => level === 1).length
  return first === 1 ? found : [...found, `${first} headings of level 1`]
}

const landmarkFaults = () => {
  const found = []
  if (document.querySelectorAll("main").length !== 1) found.push("there must be one <main>")
  if (!document.documentElement.lang) found.push("<html> has no lang")
  if (!document.title.trim()) found.push("no title")
  const navs = [...document.querySelectorAll("nav")]
  if (navs.length > 1) found.push(...navs.filter((e) => !nameOf(e).trim() || !(e.ariaLabel || e.getAttribute("aria-labelledby")))
    .map((e) => "one of several <nav> without a label: " + named(e)))
  return found
}

const tableFaults = () => [...document.querySelectorAll("table")].filter(shown).flatMap((table) => {
  const heads = [...table.querySelectorAll("th")], found = []
  if (!heads.length) found.push("a table without headers: " + named(table))
  found.push(...heads.filter((e) => !e.scope).map((e) => "a header without scope: " + named(e)))
  found.push(...heads.filter((e) => !nameOf(e)).map((e) => "an empty header: " + e.outerHTML.slice(0, 80)))
  return found
})

// A list of which only a part is drawn says how long it is, and where each row belongs.
const virtualFaults = () => [...document.querySelectorAll("[aria-rowcount]")].flatMap((grid) => {
  const count = Number(grid.getAttribute("aria-rowcount"))
  const rows = [...grid.querySelectorAll("[role=row], tr")].filter((row) => shown(row))
  const places = rows.map((row) => Number(row.getAttribute("aria-rowindex")))
  const found = []
  if (!(count >= rows.length) && count !== -1) found.push(`aria-rowcount is ${count}, with ${rows.length} rows`)
  if (places.some((place) => !(place >= 1) || (count !== -1 && place > count))) found.push("a row without aria-rowindex in " + named(grid))
  if (places.some((place, i) => i && place <= places[i - 1])) found.push("rows of " + named(grid) + " are not in order")
  return found
})

const pictureFaults = () => [...document.querySelectorAll("img:not([alt])")].map((e) => "no alt: " + e.outerHTML.slice(0, 120))
  .concat([...document.querySelectorAll("svg:not([aria-hidden=true])")].filter((e) => !nameOf(e))
    .map((e) => "an <svg> without a label: " + named(e)))

const widthFaults = () => {
  const most = document.documentElement.clientWidth
  if (document.documentElement.scrollWidth <= most) return []
  const wide = [...document.querySelectorAll("main *")].filter((e) => shown(e) && e.getBoundingClientRect().right > most + 1)
  return [`the page is ${document.documentElement.scrollWidth} pixels wide in a window of ${most}: ${wide.slice(0, 3).map(named)}`]
}

// What a box cuts off can be reached neither by scrolling nor by a wider window.
const cutFaults = () => [...document.querySelectorAll("main, main *")].filter((e) => {
  const { overflowX } = getComputedStyle(e)
  return ["hidden", "clip"].includes(overflowX) && e.clientWidth > 1 && shown(e) && e.scrollWidth > e.clientWidth + 1
    && getComputedStyle(e).textOverflow !== "ellipsis"
}).map((e) => `${e.scrollWidth - e.clientWidth} pixels are cut off in ` + named(e))

const faults = () => [...nameFaults(), ...headingFaults(), ...landmarkFaults(), ...tableFaults(),
  ...virtualFaults(), ...pictureFaults(), ...widthFaults(), ...cutFaults(), ...contrastFaults()]
