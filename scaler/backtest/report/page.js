// A crosshair over all panels of a story, and what was at that moment in words.
for (const story of document.querySelectorAll(".story")) {
  const data = JSON.parse(story.querySelector("script").textContent);
  const readout = story.querySelector(".readout");
  const before = readout.textContent;
  const lines = [...story.querySelectorAll(".crosshair")];
  story.addEventListener("mousemove", (event) => {
    const svg = event.target.closest("svg");
    if (!svg) return;
    const box = svg.getBoundingClientRect();
    const x = ((event.clientX - box.left) / box.width) * data.width;
    const share = (x - data.left) / (data.right - data.left);
    if (share < 0 || share > 1) return;
    const time = share * data.duration;
    let i = 0;
    while (i + 1 < data.rows.length && data.rows[i + 1][0] <= time) i++;
    readout.textContent = data.names.map((name, n) => `${name} ${data.rows[i][n + 1]}`).join(" · ");
    readout.prepend(`${Math.floor(time / 60)}:${String(Math.floor(time % 60)).padStart(2, "0")} — `);
    for (const line of lines) {
      line.setAttribute("x1", x);
      line.setAttribute("x2", x);
      line.style.opacity = 0.5;
    }
  });
  story.addEventListener("mouseleave", () => {
    readout.textContent = before;
    for (const line of lines) line.style.opacity = 0;
  });
}
