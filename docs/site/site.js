/* What is copied of an example is what was typed: the lines after >>> and ..., or after $. */
for (const code of document.querySelectorAll("pre > code")) {
  const lines = code.textContent.split("\n")
  const sign = lines.some(line => line.startsWith(">>> ")) ? /^(>>>|\.\.\.)( |$)/ : /^\$ /
  const typed = lines.filter(line => sign.test(line)).map(line => line.replace(sign, ""))
  if (typed.length) code.setAttribute("data-copy", typed.join("\n"))
}
