// What axe finds: `node axe_violations.js MODULES CHROMIUM URL...` opens every page at 1280 and 390 pixels, light and dark, and
// writes a list of its violations. MODULES is a folder with axe-core and puppeteer-core.
const path = require("path"), fs = require("fs")
const [modules, chromium, ...urls] = process.argv.slice(2)
const puppeteer = require(path.join(modules, "puppeteer-core"))
const axe = fs.readFileSync(path.join(modules, "axe-core/axe.min.js"), "utf8")
const main = async () => {
  const browser = await puppeteer.launch({ executablePath: chromium, args: ["--no-sandbox"] })
  const page = await browser.newPage(), found = []
  for (const url of urls) for (const width of [1280, 390]) for (const scheme of ["light", "dark"]) {
    await page.setViewport({ width, height: 844 })
    await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }])
    await page.goto(url, { waitUntil: "load" })
    await new Promise(done => setTimeout(done, 300))
    await page.evaluate(axe)
    const { violations, passes } = await page.evaluate(() => window.axe.run())
    if (!passes.length) found.push(`${url}: nothing was checked`)
    for (const { id, nodes } of violations) found.push(`${url} ${width} ${scheme}: ${id} at ${nodes[0].target} and ${nodes.length - 1} more`)
  }
  await browser.close()
  console.log(JSON.stringify(found))
}
main()
