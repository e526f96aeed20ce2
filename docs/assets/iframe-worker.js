// Search works in a worker, and a browser starts none for a page that was opened as a file. There an iframe stands in.
if (location.protocol === "file:") {
  window.IFrameWorker = window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      const inside = frame.contentWindow;
      this.loaded = new Promise((done) => {
        inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
        inside.importScripts = (...urls) => urls.reduce((before, each) => before.then(() => load(each)), Promise.resolve());
        load(url).then(done);
      });
      this.receive = (data) => inside.dispatchEvent(new MessageEvent("message", { data }));

      function load(src) {
        return new Promise((done, failed) => {
          const script = inside.document.createElement("script");
          Object.assign(script, { src, onload: done, onerror: failed });
          inside.document.head.append(script);
        });
      }
    }

    postMessage(data) {
      this.loaded.then(() => this.receive(data));
    }
  };
}
