/* What is copied of an example is what was typed: the lines after >>> and ..., or after $. */
for (const code of document.querySelectorAll("pre > code")) {
  const lines = code.textContent.split("\n")
  const sign = lines.some(line => line.startsWith(">>> ")) ? /^(>>>|\.\.\.)( |$)/ : /^\$ /
  const typed = lines.filter(line => sign.test(line)).map(line => line.replace(sign, ""))
  if (typed.length) code.setAttribute("data-copy", typed.join("\n"))
}

/* On a phone, the methods of a class are closed: a tap on a name, or a link to it, opens it. */
if (matchMedia("(max-width: 44.98em)").matches) {
  for (const heading of document.querySelectorAll(".md-typeset .method")) {
    const details = document.createElement("details"), summary = document.createElement("summary")
    details.className = "method-details"
    heading.querySelector(".headerlink")?.remove() // a summary has no link in it
    heading.before(details)
    summary.append(heading)
    details.append(summary)
    while (details.nextElementSibling && !/^H[1-3]$/.test(details.nextElementSibling.tagName)) details.append(details.nextElementSibling)
  }
  const open = () => {
    const details = document.getElementById(decodeURIComponent(location.hash.slice(1)))?.closest("details")
    if (!details) return
    details.open = true
    details.scrollIntoView()
  }
  addEventListener("hashchange", open)
  open()
}

/* Every list of the navigation is named by its own title, also where that is not shown. */
for (const list of document.querySelectorAll("nav.md-nav[aria-labelledby]")) {
  const title = list.querySelector(":scope > .md-nav__title")?.textContent.trim()
  if (!title) continue
  list.removeAttribute("aria-labelledby")
  list.setAttribute("aria-label", title)
}

/* What scrolls sideways can be reached by the keyboard, and the buttons of every example have a name. */
const reachable = () => {
  for (const box of document.querySelectorAll(".md-typeset__scrollwrap, .md-typeset pre > code, .formula")) {
    if (box.scrollWidth > box.clientWidth) box.tabIndex = 0
    else box.removeAttribute("tabindex")
  }
}
const nameExamples = () =>
  document.querySelectorAll("nav.md-code__nav").forEach((nav, at) => nav.setAttribute("aria-label", `Example ${at + 1}`))
nameExamples()
new MutationObserver(nameExamples).observe(document.body, { childList: true, subtree: true }) // they are added later
addEventListener("load", () => setTimeout(reachable, 100))
addEventListener("resize", reachable)
document.addEventListener("toggle", reachable, true)
