/* Browsers start no worker from file://. There, a hidden frame of this page runs its script instead: search needs that. */
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super()
      this.onmessage = this.onerror = this.onmessageerror = null
      this.waiting = []
      this.frame = document.createElement("iframe")
      this.frame.hidden = true
      document.body.appendChild(this.frame)
      const inside = this.frame.contentWindow
      inside.answer = data => {
        const event = new MessageEvent("message", { data })
        this.onmessage?.(event)
        this.dispatchEvent(event)
      }
      inside.document.open()
      inside.document.write("<!doctype html><body></body>")
      inside.document.close()
      inside.postMessage = data => setTimeout(() => inside.answer(data))
      const script = inside.document.createElement("script")
      script.onload = () => {
        this.ready = true
        this.waiting.splice(0).forEach(data => this.give(data))
      }
      script.onerror = event => this.onerror?.(event)
      script.src = new URL(url, location.href).href
      inside.document.body.appendChild(script)
    }
    give(data) {
      const inside = this.frame.contentWindow
      const copied = structuredClone(data) // as for a worker: its script changes the filter of a query
      setTimeout(() => inside.dispatchEvent(new inside.MessageEvent("message", { data: copied })))
    }
    postMessage(data) {
      this.ready ? this.give(data) : this.waiting.push(data)
    }
    terminate() {
      this.frame.remove()
    }
  }
}
