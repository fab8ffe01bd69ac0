// Called by pictures.py: replaces what differs from run to run by something of the same shape.
([base, run]) => {
  const starts = new Map([[base, "0194c7c1"], [run, "0194c7e2"]])
  const SHORT = "0194c7e2-6f3a".length
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
  while (walker.nextNode()) {
    const node = walker.currentNode
    node.data = node.data
      .replace(/\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b/g,
        (id) => (starts.get(id) ?? "0194c7a0") + "-6f3a-7b21-9c40-5d8e1f2a3b4c")
      .replaceAll(run.slice(0, SHORT), starts.get(run) + "-6f3a")
      .replaceAll(base.slice(0, SHORT), starts.get(base) + "-6f3a")
      .replace(/\b\d{1,2} [A-Z][a-z]{2} \d{4}, \d\d:\d\d\b/g, "2 Feb 2026, 09:12")
      .replace(/\b\d{1,2} [A-Z][a-z]{2} \d\d:\d\d\b/g, "2 Feb 09:12")
      .replace(/(?<![\d,.])\d+(\.\d+)? m?s\b/g, "2 ms")
  }
}
