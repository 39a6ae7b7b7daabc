/* The search answers a query by the sections that have every word of it: words without meaning of their own are left out. */
const STOP_WORDS = new Set(
  `a am an and are as at be by can could do does for from get has have how i in is it me my of on or our please should so than that the
  their them then there these this to use using versus via vs vs. want was we what when where which will with you your`.split(/\s+/)
)
const meaningful = query => {
  const words = query.split(/\s+/).map(word => word.replace(/[?,]+$/, ""))
  return words.filter(word => !STOP_WORDS.has(word.toLowerCase())).join(" ") || query
}

if (typeof Worker === "function") {
  const post = Worker.prototype.postMessage
  Worker.prototype.postMessage = function (message, ...rest) {
    const query = message?.type === 2 && message.data?.input
    if (query) message = { ...message, data: { ...message.data, input: meaningful(query) } }
    return post.call(this, message, ...rest)
  }
}
if (typeof module === "object") module.exports = meaningful
