// The answers of a site's own search: `node search_answers.js build/site` reads a JSON list of queries and writes, for each, what
// the script that browsers run as a worker answers: a list of positions in the index, best first.
const fs = require("fs"), path = require("path")
const meaningful = require("./search_query.js")
const site = process.argv[2], workers = path.join(site, "assets/javascripts/workers")
const script = fs.readdirSync(workers).find(name => name.startsWith("search"))
const waiting = []
globalThis.self = { postMessage: message => waiting.shift()(message) }
new Function(fs.readFileSync(path.join(workers, script), "utf8"))()
const send = data => new Promise(answer => { waiting.push(answer); self.onmessage({ data }) })
const filter = () => ({ input: { type: "operator", data: { operator: "and", operands: [] } } }) // changed by the script
const main = async () => {
  await send({ type: 0, data: JSON.parse(fs.readFileSync(path.join(site, "search.json"), "utf8")) })
  const answers = []
  for (const input of JSON.parse(fs.readFileSync(0, "utf8"))) {
    const { data } = await send({ type: 2, data: { input: meaningful(input), filter: filter() } })
    answers.push(data.items.map(item => item.id))
  }
  console.log(JSON.stringify(answers))
}
main()
