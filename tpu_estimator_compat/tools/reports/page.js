// A line under the pointer, and the values there. Without it the page shows all the same.
for (const figure of document.querySelectorAll("figure[data-steps]")) {
  const svg = figure.querySelector("svg"), readout = figure.querySelector("output");
  const steps = JSON.parse(figure.dataset.steps), lines = JSON.parse(figure.dataset.lines);
  const { low, high, left, right } = svg.dataset;
  const cursor = document.createElementNS(svg.namespaceURI, "line");
  cursor.setAttribute("class", "cursor");
  cursor.setAttribute("y1", 10);
  cursor.setAttribute("y2", 226);
  svg.addEventListener("pointermove", (event) => {
    const box = svg.getBoundingClientRect();
    const x = ((event.clientX - box.left) / box.width) * svg.viewBox.baseVal.width;
    const wanted = +low + ((x - left) / (right - left)) * (high - low);
    let nearest = 0;
    steps.forEach((step, i) => {
      if (Math.abs(step - wanted) < Math.abs(steps[nearest] - wanted)) nearest = i;
    });
    const place = +left + ((steps[nearest] - low) / (high - low)) * (right - left);
    cursor.setAttribute("x1", place);
    cursor.setAttribute("x2", place);
    svg.append(cursor);
    const values = lines.map(([name, values]) => `${name} ${values[nearest] ?? "-"}`);
    readout.textContent = `Step ${steps[nearest]}: ${values.join(", ")}`;
  });
  svg.addEventListener("pointerleave", () => {
    cursor.remove();
    readout.textContent = "";
  });
}
