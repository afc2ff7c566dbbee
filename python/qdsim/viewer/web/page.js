"use strict";
(async () => {
const at = id => document.getElementById(id);
const fail = words => { at("fault").hidden = false; at("fault").textContent = words; };
if (typeof DecompressionStream === "undefined") return fail("This page needs a browser of 2023 or later.");
const unpacked = id => {
  const bytes = Uint8Array.from(atob(at(id).textContent.trim()), c => c.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
};
const [library, data] = await Promise.all([unpacked("library"), unpacked("data")]);
const script = document.createElement("script");
script.textContent = library;
document.head.appendChild(script);
const stage = JSON.parse(data);
const { unit, size } = stage;
const V = (a, i = 0, scale = unit) => new THREE.Vector3(a[i] * scale, a[i + 1] * scale, a[i + 2] * scale);

// ------------------------------------------------------------------ the renderer

const place = at("stage");
let renderer;
try {
  renderer = new THREE.WebGLRenderer({ antialias: true, alpha: true, preserveDrawingBuffer: true });
} catch (error) {
  return fail("This browser shows no WebGL.");
}
renderer.outputEncoding = THREE.sRGBEncoding;
renderer.shadowMap.enabled = true;
renderer.shadowMap.type = THREE.PCFSoftShadowMap;
renderer.setPixelRatio(Math.min(window.devicePixelRatio || 1, 2));
place.appendChild(renderer.domElement);

const scene = new THREE.Scene();
const up = new THREE.Vector3(...stage.up);
const colour = (r, g, b) => new THREE.Color(r, g, b).convertSRGBToLinear();
const hex = h => new THREE.Color(h).convertSRGBToLinear();
const matte = (c, alpha = 1, more = {}) => new THREE.MeshStandardMaterial({
  color: c, roughness: 0.62, metalness: 0.02, transparent: alpha < 1, opacity: alpha,
  depthWrite: alpha >= 1, side: THREE.DoubleSide, ...more });
const layers = {};
const layer = name => {
  if (!layers[name]) { layers[name] = new THREE.Group(); scene.add(layers[name]); }
  return layers[name];
};

// ------------------------------------------------------------------ shapes

// Corners with normals that blend over smooth parts and break at edges of more than 40 degrees.
const CREASE = Math.cos(40 * Math.PI / 180);
function solid(mesh, tones) {
  const count = mesh.faces.length / 3;
  const normals = new Float32Array(3 * count), around = new Map();
  const a = new THREE.Vector3(), b = new THREE.Vector3(), c = new THREE.Vector3();
  for (let f = 0; f < count; ++f) {
    const [i, j, k] = [0, 1, 2].map(s => 3 * mesh.faces[3 * f + s]);
    a.fromArray(mesh.vertices, i); b.fromArray(mesh.vertices, j).sub(a); c.fromArray(mesh.vertices, k).sub(a);
    b.cross(c).toArray(normals, 3 * f);
    for (const v of [i, j, k]) { if (!around.has(v)) around.set(v, []); around.get(v).push(f); }
  }
  const length = f => Math.hypot(normals[3 * f], normals[3 * f + 1], normals[3 * f + 2]) || 1;
  const points = new Float32Array(9 * count), turned = new Float32Array(9 * count), shade = new Float32Array(9 * count);
  for (let f = 0; f < count; ++f) {
    const own = length(f);
    for (let s = 0; s < 3; ++s) {
      const v = 3 * mesh.faces[3 * f + s], o = 9 * f + 3 * s;
      let x = 0, y = 0, z = 0;
      for (const g of around.get(v)) {
        const dot = normals[3 * f] * normals[3 * g] + normals[3 * f + 1] * normals[3 * g + 1] + normals[3 * f + 2] * normals[3 * g + 2];
        if (dot >= CREASE * own * length(g)) { x += normals[3 * g]; y += normals[3 * g + 1]; z += normals[3 * g + 2]; }
      }
      const l = Math.hypot(x, y, z) || 1;
      turned.set([x / l, y / l, z / l], o);
      points.set([mesh.vertices[v] * unit, mesh.vertices[v + 1] * unit, mesh.vertices[v + 2] * unit], o);
      const t = tones && tones[f] ? 0.62 : 1;
      shade.set([t, t, t], o);
    }
  }
  const geometry = new THREE.BufferGeometry();
  geometry.setAttribute("position", new THREE.BufferAttribute(points, 3));
  geometry.setAttribute("normal", new THREE.BufferAttribute(turned, 3));
  if (tones) geometry.setAttribute("color", new THREE.BufferAttribute(shade, 3));
  return geometry;
}
function rods(segments, radius, material) {
  const count = segments.length / 6;
  const made = new THREE.InstancedMesh(new THREE.CylinderGeometry(1, 1, 1, 6), material, count);
  const m = new THREE.Matrix4(), q = new THREE.Quaternion(), y = new THREE.Vector3(0, 1, 0);
  for (let i = 0; i < count; ++i) {
    const p = V(segments, 6 * i), d = V(segments, 6 * i + 3).sub(p), l = d.length();
    q.setFromUnitVectors(y, l > 0 ? d.clone().divideScalar(l) : y);
    m.compose(p.addScaledVector(d, 0.5), q, new THREE.Vector3(radius, l, radius));
    made.setMatrixAt(i, m);
  }
  made.frustumCulled = false;
  return made;
}

const bodies = stage.bodies.map(() => { const g = new THREE.Group(); scene.add(g); return g; });
const goalBodies = new Map();
if (stage.goal) stage.goal.bodies.forEach((b, i) => {
  const g = new THREE.Group();
  pose(g, stage.goal.poses, 7 * i);
  layer("goal").add(g);
  goalBodies.set(b, g);
});
const solids = new Map(), walls = [], byLayer = { all: [], visual: [], collision: [] };
const goalInk = matte(hex("#3c8d40"), 1, { roughness: 1, emissive: hex("#1c5a22") });
const outline = matte(hex("#3b3325"), 0.75);
for (const shape of stage.shapes) {
  const mesh = stage.meshes[shape.mesh], [r, g, b, alpha] = shape.colour;
  const group = new THREE.Group();
  group.position.copy(V(shape.pos));
  group.quaternion.set(shape.quat[1], shape.quat[2], shape.quat[3], shape.quat[0]);
  const kind = stage.bodies[shape.body].kind;
  if (!mesh.faces.length) {
    const cloud = new THREE.BufferGeometry();
    cloud.setAttribute("position", new THREE.Float32BufferAttribute(mesh.vertices.map(x => x * unit), 3));
    group.add(new THREE.Points(cloud, new THREE.PointsMaterial({ color: colour(r, g, b), size: 0.012 * size })));
  } else if (!(shape.plane && shape.body === 0 && level(shape))) {
    const key = `${shape.mesh} ${!!shape.tones}`;
    if (!solids.has(key)) solids.set(key, solid(mesh, shape.tones));
    const skin = matte(colour(r, g, b), shape.plane ? Math.min(alpha, 0.35) : alpha, shape.tones ? { vertexColors: true } : {});
    const made = new THREE.Mesh(solids.get(key), skin);
    made.castShadow = alpha > 0.5 && !shape.plane;
    made.receiveShadow = true;
    group.add(made);
    if (kind === "world" && !shape.plane) walls.push(made);
  }
  if (shape.outlined && mesh.lines.length) {
    group.add(rods(mesh.lines, 0.0016 * size, outline));
    const goal = goalBodies.get(shape.body);
    if (goal) {
      const there = new THREE.Group();
      there.position.copy(group.position);
      there.quaternion.copy(group.quaternion);
      there.scale.setScalar(1.02);
      there.add(rods(mesh.lines, 0.0032 * size, goalInk));
      goal.add(there);
    }
  }
  byLayer[shape.layer].push(group);
  bodies[shape.body].add(group);
}
function level(shape) {
  const n = new THREE.Vector3(0, 0, 1).applyQuaternion(new THREE.Quaternion(shape.quat[1], shape.quat[2], shape.quat[3], shape.quat[0]));
  return n.dot(new THREE.Vector3(...stage.floor.normal)) > 0.999;
}
function pose(node, row, o) {
  node.position.copy(V(row, o));
  node.quaternion.set(row[o + 4], row[o + 5], row[o + 6], row[o + 3]).normalize();
}

// ------------------------------------------------------------------ ground, light, camera

const floor = V(stage.floor.at), normal = new THREE.Vector3(...stage.floor.normal);
const flatten = new THREE.Quaternion().setFromUnitVectors(new THREE.Vector3(0, 0, 1), normal);
const centre = V(stage.centre);
{
  const reach = 3 * size;
  const cell = 10 ** Math.floor(Math.log10(size / 3));
  const step = size / 3 / cell > 5 ? 5 * cell : size / 3 / cell > 2 ? 2 * cell : cell;
  const foot = centre.clone().addScaledVector(normal, floor.clone().sub(centre).dot(normal));
  const grid = new THREE.ShaderMaterial({
    transparent: true, depthWrite: false, side: THREE.DoubleSide,
    extensions: { derivatives: true },
    uniforms: { middle: { value: foot }, reach: { value: reach }, cell: { value: step / 2 }, dark: { value: document.body.classList.contains("dark") ? 1 : 0 } },
    vertexShader: "varying vec3 at; varying vec2 on; void main() { vec4 p = modelMatrix * vec4(position, 1.0); at = p.xyz; on = position.xy; gl_Position = projectionMatrix * viewMatrix * p; }",
    fragmentShader: "varying vec3 at; varying vec2 on; uniform vec3 middle; uniform float reach, cell, dark; float line(float c) { vec2 g = abs(fract(on / c - 0.5) - 0.5) / fwidth(on / c); return 1.0 - min(min(g.x, g.y), 1.0); } void main() { float fade = 1.0 - smoothstep(0.15, 0.75, distance(at, middle) / reach); float ink = max(0.11 * line(cell), 0.24 * line(2.0 * cell)); vec3 c = mix(vec3(0.25, 0.33, 0.4), vec3(0.7, 0.78, 0.85), dark); gl_FragColor = vec4(c, ink * fade); }",
  });
  const plane = new THREE.Mesh(new THREE.PlaneGeometry(2 * reach, 2 * reach), grid);
  const shade = new THREE.Mesh(new THREE.PlaneGeometry(2 * reach, 2 * reach), new THREE.ShadowMaterial({ opacity: 0.2, depthWrite: false }));
  shade.receiveShadow = true;
  for (const [part, order] of [[shade, -2], [plane, -1]]) {
    part.position.copy(foot);
    part.quaternion.copy(flatten);
    part.renderOrder = order;
    layer("ground").add(part);
  }
}
scene.add(new THREE.HemisphereLight(hex("#ffffff"), hex("#b9c2cc"), 0.72));
const eye0 = V(stage.eye);
const towards = eye0.clone().sub(centre).normalize();
const side = new THREE.Vector3().crossVectors(up, towards).normalize();
const key = new THREE.DirectionalLight(0xffffff, 0.62);
key.position.copy(centre).addScaledVector(stage.flat ? towards : up, 1.5 * size).addScaledVector(side, -0.55 * size).addScaledVector(stage.flat ? up : towards, 0.5 * size);
key.target.position.copy(centre);
key.castShadow = true;
key.shadow.mapSize.set(2048, 2048);
key.shadow.radius = 5;
key.shadow.bias = -0.0004;
key.shadow.normalBias = 0.004 * size;
Object.assign(key.shadow.camera, { left: -size, right: size, top: size, bottom: -size, near: 0.05 * size, far: 4 * size });
scene.add(key, key.target);
const fill = new THREE.DirectionalLight(0xffffff, 0.22);
fill.position.copy(centre).addScaledVector(side, 2 * size).addScaledVector(towards, size);
fill.target = key.target;
scene.add(fill);

const camera = new THREE.PerspectiveCamera(stage.flat ? 7 : 30, 1, 0.01 * size, 100 * size);
camera.up.copy(up);
const look = { target: centre.clone(), offset: new THREE.Vector3() };
function home() {
  const wide = Math.max(camera.aspect, 0.2), half = Math.tan(camera.fov * Math.PI / 360);
  // Room for the words above and below.
  const tall = size * (stage.flat ? 0.47 : 0.44) * (1 + 130 / Math.max(window.innerHeight, 260));
  const distance = Math.max(tall, tall / wide * 1.05) / half;
  look.target.copy(centre);
  look.offset.copy(towards).multiplyScalar(distance);
}
function aim() {
  camera.position.copy(look.target).add(look.offset);
  camera.near = Math.max(look.offset.length() - 6 * size, 0.01 * size);
  camera.far = look.offset.length() + 8 * size;
  camera.updateProjectionMatrix();
  camera.lookAt(look.target);
}
let dirty = true, touched = false;
function resize() {
  const w = Math.max(place.clientWidth, 1), h = Math.max(place.clientHeight, 1);
  renderer.setSize(w, h);
  camera.aspect = w / h;
  if (!touched) home();
  aim();
  dirty = true;
}
window.addEventListener("resize", resize);
resize();
// Walls and tables between the first view and what it is about are seen through.
scene.updateMatrixWorld(true);
{
  bodies.forEach((g, b) => pose(g, stage.rest, 7 * b));
  scene.updateMatrixWorld(true);
  const ray = new THREE.Raycaster();
  bodies.forEach((g, b) => {
    if (stage.bodies[b].kind === "world") return;
    const aimed = g.getWorldPosition(new THREE.Vector3()), from = camera.position.clone();
    ray.set(from, aimed.clone().sub(from).normalize());
    ray.far = from.distanceTo(aimed) * 0.999;
    for (const hit of ray.intersectObjects(walls)) Object.assign(hit.object.material, { transparent: true, opacity: Math.min(hit.object.material.opacity, 0.22), depthWrite: false });
  });
}

const fingers = new Map();
function turn(dx, dy) {
  const angle = 2 * Math.PI / Math.max(place.clientHeight, 200);
  look.offset.applyAxisAngle(up, -dx * angle);
  const across = new THREE.Vector3().crossVectors(up, look.offset).normalize();
  const polar = look.offset.angleTo(up), bend = Math.min(Math.max(-dy * angle, 0.03 - polar), Math.PI - 0.03 - polar);
  look.offset.applyAxisAngle(across, bend);
}
function shift(dx, dy) {
  const scale = 2 * look.offset.length() * Math.tan(camera.fov * Math.PI / 360) / place.clientHeight;
  const m = camera.matrixWorld.elements;
  look.target.addScaledVector(new THREE.Vector3(m[0], m[1], m[2]), -dx * scale);
  look.target.addScaledVector(new THREE.Vector3(m[4], m[5], m[6]), dy * scale);
}
function zoom(factor) {
  const l = look.offset.length();
  look.offset.multiplyScalar(Math.min(Math.max(l * factor, 0.1 * size), 60 * size) / l);
}
let pressed = null;
place.addEventListener("pointerdown", event => {
  place.focus({ preventScroll: true });
  place.setPointerCapture(event.pointerId);
  fingers.set(event.pointerId, event);
  pressed = [event.clientX, event.clientY];
});
place.addEventListener("pointermove", event => {
  const before = fingers.get(event.pointerId);
  if (!before) return;
  const dx = event.clientX - before.clientX, dy = event.clientY - before.clientY;
  if (fingers.size === 2) {
    const other = [...fingers.values()].find(f => f.pointerId !== event.pointerId);
    const apart = f => Math.hypot(f.clientX - other.clientX, f.clientY - other.clientY) || 1;
    zoom(apart(before) / apart(event));
    shift(dx / 2, dy / 2);
  } else if (event.buttons & 2 || event.shiftKey) shift(dx, dy);
  else turn(dx, dy);
  fingers.set(event.pointerId, event);
  touched = dirty = true;
  aim();
});
for (const name of ["pointerup", "pointercancel"]) place.addEventListener(name, event => {
  fingers.delete(event.pointerId);
  if (name === "pointerup" && pressed && Math.hypot(event.clientX - pressed[0], event.clientY - pressed[1]) < 4) pick(event);
});
place.addEventListener("contextmenu", event => event.preventDefault());
place.addEventListener("wheel", event => {
  event.preventDefault();
  zoom(Math.exp(Math.sign(event.deltaY) * Math.min(Math.abs(event.deltaY), 100) * 0.0015));
  touched = dirty = true;
  aim();
}, { passive: false });

// ------------------------------------------------------------------ over it

const most = Math.max(1, ...stage.forces.map(row => row.length / 10));
const force = hex("#d62839"), smoothed = hex("#2077b4");
const arrowParts = [new THREE.CylinderGeometry(1, 1, 1, 12), new THREE.ConeGeometry(1, 1, 20)];
// Once as things are, once faintly over what hides them.
const arrows = arrowParts.map(part => [1, 0.45].map(alpha => {
  const skin = new THREE.MeshStandardMaterial({ color: 0xffffff, roughness: 0.5, transparent: alpha < 1, opacity: alpha, depthTest: alpha >= 1, depthWrite: alpha >= 1 });
  const made = new THREE.InstancedMesh(part, skin, most);
  made.frustumCulled = false;
  made.renderOrder = alpha < 1 ? 5 : 1;
  made.castShadow = false;
  layer("forces").add(made);
  return made;
}));
const cones = new THREE.InstancedMesh(new THREE.ConeGeometry(1, 1, 28, 1, true), matte(force, 0.22, { emissive: hex("#d62839"), emissiveIntensity: 0.25 }), most);
cones.frustumCulled = false;
cones.renderOrder = 3;
layer("cones").add(cones);
function drawForces(row, smooth) {
  const count = row.length / 10, y = new THREE.Vector3(0, 1, 0), q = new THREE.Quaternion(), m = new THREE.Matrix4();
  const thick = 0.0062 * size, head = 0.016 * size;
  for (let i = 0; i < count; ++i) {
    const o = 10 * i, p = V(row, o), f = V(row, o + 3, 1), n = V(row, o + 6, 1), mu = row[o + 9];
    const strength = f.length();
    const long = 0.2 * size * Math.min(Math.max(Math.sqrt(strength / (stage.typical || strength)), 0.35), 1.6);
    f.normalize();
    q.setFromUnitVectors(y, f);
    const tip = 2.6 * head;
    m.compose(p.clone().addScaledVector(f, -0.5 * (long + tip)), q, new THREE.Vector3(thick, Math.max(long - tip, 1e-9), thick));
    arrows[0].forEach(part => part.setMatrixAt(i, m));
    m.compose(p.clone().addScaledVector(f, -0.5 * tip), q, new THREE.Vector3(head, tip, head));
    arrows[1].forEach(part => part.setMatrixAt(i, m));
    arrows.flat().forEach(part => part.setColorAt(i, smooth ? smoothed : force));
    // The apex of three's cone is above its middle; friction cones open outwards, against the inward normal.
    const tall = 0.1 * size / Math.sqrt(1 + mu * mu);
    q.setFromUnitVectors(y, n);
    m.compose(p.clone().addScaledVector(n, -0.5 * tall), q, new THREE.Vector3(mu * tall, tall, mu * tall));
    cones.setMatrixAt(i, m);
  }
  for (const part of [...arrows.flat(), cones]) {
    part.count = count;
    part.visible = count > 0;
    part.instanceMatrix.needsUpdate = true;
    if (part.instanceColor) part.instanceColor.needsUpdate = true;
  }
}

const tubes = [];
if (stage.trail) {
  const count = stage.trail.length / 6;
  for (const [k, ink, wide] of [[0, "#b98520", 0.0042], [3, "#e0a93a", 0.0026]]) {
    const points = [];
    for (let i = 0; i < count; ++i) points.push(V(stage.trail, 6 * i + k));
    const long = points.reduce((sum, p, i) => i ? sum + p.distanceTo(points[i - 1]) : 0, 0);
    if (long < 1e-3 * size) continue;
    const segments = [];
    for (let i = 1; i < count; ++i) segments.push(...stage.trail.slice(6 * (i - 1) + k, 6 * (i - 1) + k + 3), ...stage.trail.slice(6 * i + k, 6 * i + k + 3));
    for (const alpha of [0.9, 0.18]) {
      const made = rods(segments, wide * size, matte(hex(ink), alpha, { depthTest: !stage.flat }));
      made.renderOrder = 2;
      layer("trail").add(made);
      if (alpha > 0.5) tubes.push(made);
    }
  }
}
let nodes = null, chosen = null;
if (stage.tree) {
  const thin = new THREE.BufferGeometry();
  thin.setAttribute("position", new THREE.Float32BufferAttribute(stage.tree.plain.map(x => x * unit), 3));
  layer("tree").add(new THREE.LineSegments(thin, new THREE.LineBasicMaterial({ color: hex("#2f6f9f"), transparent: true, opacity: 0.55 })));
  if (stage.tree.chosen.length) layer("tree").add(rods(stage.tree.chosen, 0.0032 * size, matte(force)));
  const ball = new THREE.SphereGeometry(1, 14, 10), m = new THREE.Matrix4();
  const balls = (points, radius, ink) => {
    const made = new THREE.InstancedMesh(ball, matte(hex(ink)), points.length / 3);
    for (let i = 0; i < points.length / 3; ++i) made.setMatrixAt(i, m.compose(V(points, 3 * i), new THREE.Quaternion(), new THREE.Vector3(radius, radius, radius)));
    made.frustumCulled = false;
    layer("tree").add(made);
    return made;
  };
  if (stage.tree.nodes.length) nodes = balls(stage.tree.nodes, 0.006 * size, "#2f6f9f");
  if (stage.tree.regrasps.length) balls(stage.tree.regrasps, 0.009 * size, "#7b2d8e");
  chosen = balls([0, 0, 0], 0.012 * size, "#f08c1e");
  chosen.visible = false;
}
function pick(event) {
  if (!nodes || !layer("tree").visible) return;
  const box = place.getBoundingClientRect(), ray = new THREE.Raycaster();
  ray.setFromCamera(new THREE.Vector2(2 * (event.clientX - box.left) / box.width - 1, 1 - 2 * (event.clientY - box.top) / box.height), camera);
  const hit = ray.intersectObject(nodes)[0];
  if (hit) { running(false); show(stage.tree.frames[hit.instanceId]); }
}
const pressure = stage.patches ? stage.bands.map(c => {
  const made = new THREE.Mesh(new THREE.BufferGeometry(), new THREE.MeshBasicMaterial({ color: colour(c[0] / 255, c[1] / 255, c[2] / 255), side: THREE.DoubleSide }));
  made.frustumCulled = false;
  layer("pressure").add(made);
  return made;
}) : [];
function drawPressure(rows) {
  pressure.forEach(made => { made.visible = false; });
  for (const [band, corners] of rows) {
    pressure[band].geometry.setAttribute("position", new THREE.Float32BufferAttribute(corners.map(x => x * unit), 3));
    pressure[band].visible = true;
  }
}

// ------------------------------------------------------------------ time

const total = stage.poses.length, scrubber = at("scrubber");
let now = 0, playing = false, since = 0, before = 0;
function show(frame) {
  now = Math.min(Math.max(Math.round(frame), 0), total - 1);
  const row = stage.poses[now];
  stage.moving.forEach((b, i) => pose(bodies[b], row, 7 * i));
  drawForces(stage.forces[now], stage.smoothed[now]);
  if (pressure.length) drawPressure(stage.patches[now]);
  tubes.forEach(tube => { tube.count = now; tube.visible = now > 0; });
  if (nodes) {
    const node = stage.tree.frames.indexOf(now);
    chosen.visible = node >= 0;
    if (node >= 0) chosen.position.copy(V(stage.tree.nodes, 3 * node));
  }
  scrubber.value = now;
  at("said").textContent = stage.said[now] || (total > 1 ? `frame ${now + 1} of ${total}` : "");
  at("said").className = /^regrasp/.test(stage.said[now]) ? "regrasp" : "";
  at("left").textContent = stage.left[now];
  dirty = true;
}
function running(on) {
  playing = on && total > 1;
  at("play").classList.toggle("on", playing);
  before = performance.now();
  since = 0;
}
function tick(time) {
  if (playing) {
    since += (time - before) / 1000 * Number(at("speed").value);
    let next = now;
    while (since >= Math.max(stage.seconds[next], 1e-3)) {
      since -= Math.max(stage.seconds[next], 1e-3);
      next = (next + 1) % total;
      if (since > 5) since = 0;
    }
    if (next !== now) show(next);
  }
  before = time;
  if (dirty) { renderer.render(scene, camera); dirty = false; }
  requestAnimationFrame(tick);
}
const jump = way => {
  const stops = [0, ...stage.marks.filter(m => /^regrasp/.test(m[1]) || !stage.marks.some(o => /^regrasp/.test(o[1]))).map(m => m[0]), total - 1];
  const next = way > 0 ? stops.find(f => f > now) : [...stops].reverse().find(f => f < now);
  if (next !== undefined) show(next);
};

// ------------------------------------------------------------------ controls

scrubber.max = total - 1;
scrubber.addEventListener("input", () => { running(false); show(Number(scrubber.value)); });
stage.marks.forEach(([frame, name], k) => {
  if (!/^regrasp/.test(name) || total < 2) return;
  const until = k + 1 < stage.marks.length ? stage.marks[k + 1][0] : frame;
  const span = document.createElement("span");
  span.title = name;
  span.style.left = `${100 * frame / (total - 1)}%`;
  span.style.width = `${100 * (until - frame) / (total - 1)}%`;
  at("marks").appendChild(span);
});
const there = {
  forces: stage.typical > 0, cones: stage.typical > 0, goal: !!stage.goal, trail: tubes.length > 0, tree: !!stage.tree,
  pressure: pressure.length > 0, collision: byLayer.visual.length > 0, ground: true };
if (there.forces) document.querySelector("[data-layer=forces] span").textContent = `contact forces (typically ${Number(stage.typical.toPrecision(2))} N)`;
function switched(name, on) {
  if (name === "collision") {
    byLayer.visual.forEach(g => { g.visible = !on; });
    byLayer.collision.forEach(g => { g.visible = on; });
  } else layer(name).visible = on;
  dirty = true;
}
for (const label of document.querySelectorAll("#legend label")) {
  const name = label.dataset.layer, box = label.querySelector("input");
  label.hidden = !there[name];
  box.addEventListener("change", () => switched(name, box.checked));
  switched(name, box.checked);
}
function picture() {
  renderer.render(scene, camera);
  const flat = document.createElement("canvas"), from = renderer.domElement;
  [flat.width, flat.height] = [from.width, from.height];
  const ink = flat.getContext("2d"), paper = ink.createLinearGradient(0, 0, 0, flat.height), style = getComputedStyle(document.body);
  paper.addColorStop(0, style.getPropertyValue("--top").trim());
  paper.addColorStop(1, style.getPropertyValue("--low").trim());
  ink.fillStyle = paper;
  ink.fillRect(0, 0, flat.width, flat.height);
  ink.drawImage(from, 0, 0);
  const link = document.createElement("a");
  link.download = `${stage.title.replace(/[^\w-]+/g, "_").slice(0, 60) || "qdsim"}_${now}.png`;
  link.href = flat.toDataURL("image/png");
  link.click();
}
const goHome = () => { touched = false; home(); aim(); dirty = true; };
at("play").addEventListener("click", () => running(!playing));
at("home").addEventListener("click", goHome);
at("shot").addEventListener("click", picture);
document.addEventListener("keydown", event => {
  if (event.target.tagName === "SELECT" || event.ctrlKey || event.metaKey || event.altKey) return;
  const still = move => () => { running(false); move(); };
  const keys = {
    " ": () => running(!playing), ArrowRight: still(() => show(now + (event.shiftKey ? 10 : 1))), ArrowLeft: still(() => show(now - (event.shiftKey ? 10 : 1))),
    ArrowUp: still(() => jump(1)), ArrowDown: still(() => jump(-1)), Home: still(() => show(0)), End: still(() => show(total - 1)), r: goHome, s: picture };
  if (!keys[event.key]) return;
  if (document.activeElement && document.activeElement !== document.body && document.activeElement.blur) document.activeElement.blur();
  keys[event.key]();
  event.preventDefault();
});
document.body.classList.toggle("still", total < 2);
const asked = /frame=(\d+)/.exec(location.hash);
show(asked ? Number(asked[1]) : stage.tree ? total - 1 : 0);
running(!asked && !stage.tree && !window.matchMedia("(prefers-reduced-motion: reduce)").matches);
requestAnimationFrame(tick);
window.qdsimPage = { show, running, stage, look: () => ({ now, playing, layers: Object.fromEntries(Object.entries(layers).map(([k, g]) => [k, g.visible])) }) };
})();
