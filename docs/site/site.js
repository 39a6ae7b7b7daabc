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
