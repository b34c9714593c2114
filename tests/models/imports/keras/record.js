// Records what TensorFlow.js computes of Keras models: in a folder with node_modules,
//   npm install @tensorflow/tfjs@4.22 && node .../tests/models/imports/keras/record.js
// Of each model NAME.json is its toJSON(), and NAME.numbers the inputs, the parameters as
// models/imports lays them out, the output and the gradients of the sum of
// 0.3 + 0.1 ((7 i) mod 13) times output i, a line each.
const fs = require('fs');
const path = require('path');
const tf = require(require.resolve('@tensorflow/tfjs', {paths: [process.cwd()]}));
const L = tf.layers;
const ROWS = 5, VALUES = 9, STEPS = 6;

function rows() {
  let x = L.concatenate().apply([numbers, L.flatten().apply(
      L.embedding({inputDim: VALUES, outputDim: 3, name: 'embed'}).apply(ids))]);
  let h = L.dense({units: 7, activation: 'elu', kernelInitializer: 'heNormal', name: 'wide'}).apply(x);
  h = L.batchNormalization({name: 'normal', momentum: 0.9}).apply(h);
  const gate = L.dense({units: 7, activation: 'sigmoid', name: 'gate'}).apply(x);
  const both = L.average().apply([L.multiply().apply([h, gate]), L.maximum().apply([h, gate])]);
  const layer = L.layerNormalization({name: 'layer'}).apply(both);
  const near = L.dot({axes: 1, normalize: true}).apply([L.leakyReLU({alpha: 0.2}).apply(layer), gate]);
  return L.concatenate().apply([near, L.dense({units: 2, activation: 'softplus', name: 'out'}).apply(layer)]);
}
function windows() {
  const x = L.embedding({inputDim: VALUES, outputDim: 4, name: 'embed'}).apply(ids);
  const same = L.conv1d({filters: 5, kernelSize: 4, padding: 'same', activation: 'relu', name: 'same'}).apply(x);
  const causal = L.conv1d({filters: 5, kernelSize: 3, name: 'causal'}).apply(x);
  const halves = L.averagePooling1d({poolSize: 2, strides: 2, padding: 'same'}).apply(same);
  const most = L.maxPooling1d({poolSize: 3, strides: 2}).apply(causal);
  const valid = L.conv1d({filters: 3, kernelSize: 2, strides: 2, name: 'valid'}).apply(causal);
  return L.dense({units: 2, name: 'out'}).apply(L.concatenate().apply([
    L.flatten().apply(halves), L.globalMaxPooling1d().apply(most),
    L.globalAveragePooling1d().apply(valid), numbers]));
}
function states() {
  const x = L.embedding({inputDim: VALUES, outputDim: 4, name: 'embed'}).apply(ids);
  const lstm = L.lstm({units: 3, recurrentActivation: 'sigmoid', returnSequences: true, name: 'lstm'}).apply(x);
  const gru = L.gru({units: 3, recurrentActivation: 'sigmoid', resetAfter: false, name: 'gru'}).apply(lstm);
  const simple = L.simpleRNN({units: 2, name: 'simple'}).apply(lstm);
  const each = L.timeDistributed({layer: L.dense({units: 2, activation: 'tanh'}), name: 'each'}).apply(lstm);
  return L.dense({units: 1, name: 'out'}).apply(L.concatenate().apply(
      [gru, simple, L.flatten().apply(each), numbers]));
}
function bothWays() {
  const x = L.embedding({inputDim: VALUES, outputDim: 4, name: 'embed'}).apply(ids);
  const lstm = L.bidirectional({layer: L.lstm({units: 3, recurrentActivation: 'sigmoid', returnSequences: true}),
                                mergeMode: 'concat', name: 'both'}).apply(x);
  const gru = L.bidirectional({layer: L.gru({units: 2, recurrentActivation: 'sigmoid', resetAfter: false}),
                               mergeMode: 'concat', name: 'two'}).apply(lstm);
  return L.dense({units: 1, name: 'out'}).apply(L.concatenate().apply([gru, numbers]));
}

let numbers, ids;
// The columns of Keras's gates, in ONNX's order.
const ORDER = {lstm: [0, 3, 1, 2], gru: [0, 1, 2], simple: [0]};
const kindOf = name => /lstm|both/.test(name) ? 'lstm' : /gru|two/.test(name) ? 'gru' : /simple/.test(name) ? 'simple' : null;
function gates(kind, array, shape) {  // [in, gates x units] -> [gates x units, in]
  const n = ORDER[kind].length, inputs = shape.length === 1 ? 1 : shape[0], width = shape[shape.length - 1], u = width / n;
  const out = [];
  for (const g of ORDER[kind]) for (let k = 0; k < u; ++k) for (let i = 0; i < inputs; ++i) out.push(array[i * width + g * u + k]);
  return out;
}
// Parameters of ours by name: the values of theirs, in our layout.
function laidOut(values) {
  const ours = new Map();
  const append = (name, list) => ours.set(name, (ours.get(name) || []).concat(list));
  for (const [full, shape, array] of values) {
    const parts = full.split('/');
    let layer = parts[0].replace(/^(forward|backward)_/, '').replace(/_\d+$/, ''), part = parts[parts.length - 1].replace(/_\d+$/, '');
    const kind = kindOf(layer);
    if (kind) {
      append(layer + '/' + part, gates(kind, array, shape));
    } else if (shape.length === 3) {  // [window, in, out] -> [out, in, window]
      const [k, c, f] = shape, out = [];
      for (let o = 0; o < f; ++o) for (let i = 0; i < c; ++i) for (let w = 0; w < k; ++w) out.push(array[(w * c + i) * f + o]);
      append(layer + '/' + part, out);
    } else {
      append(layer + '/' + part, Array.from(array));
    }
  }
  return ours;
}

(async () => {
  await tf.setBackend('cpu');
  for (const [name, make] of Object.entries({rows, windows, states, both_ways: bothWays})) {
    let seed = 7;
    const random = () => { seed = (seed * 1103515245 + 12345) % 2147483648; return seed / 1073741824 - 1; };
    numbers = tf.input({shape: [4], name: 'dense'});
    ids = tf.input({shape: [STEPS], dtype: 'int32', name: 'ids'});
    const model = tf.model({inputs: [numbers, ids], outputs: make()});
    for (const layer of model.layers) {  // not at their beginnings, which are zeros and ones
      layer.setWeights(layer.getWeights().map((w, i) =>
          tf.tensor(Array.from({length: w.size}, () => /moving_variance/.test(layer.weights[i].originalName) ? 1 : random() * 0.7), w.shape)));
    }
    const named = [];
    for (const layer of model.layers) for (const w of layer.weights) named.push([layer, w]);
    const full = ([layer, w]) => {
      const own = w.originalName.split('/');
      const way = /backward/.test(w.originalName) ? 'backward_' : '';
      return way + layer.name + '/' + own[own.length - 1];
    };
    const x = tf.tensor(Array.from({length: ROWS * 4}, random), [ROWS, 4]);
    const c = tf.tensor(Array.from({length: ROWS * STEPS}, () => Math.floor((random() + 1) * 4.499)), [ROWS, STEPS], 'int32');
    const trainable = named.filter(([, w]) => w.trainable);
    let output;
    const f = () => {
      output = model.apply([x, c], {training: true});
      const flat = output.reshape([-1]);
      const weights = tf.tensor(Array.from({length: flat.size}, (_, i) => 0.3 + 0.1 * ((7 * i) % 13)));
      return flat.mul(weights).sum();
    };
    const {grads} = tf.variableGrads(f, trainable.map(([, w]) => w.val));
    const before = laidOut(named.map(n => [full(n), n[1].shape, n[1].val.dataSync()]));
    const slopes = laidOut(trainable.map(n => [full(n), n[1].shape, grads[n[1].val.name].dataSync()]));
    const lines = [['dense', x.dataSync()], ['ids', c.dataSync()], ...before, ['output', model.apply([x, c], {training: true}).dataSync()]];
    for (const [key, value] of slopes) lines.push(['d ' + key, value]);
    const text = lines.map(([key, v]) => key + ': ' + Array.from(v).map(n => Number(n).toPrecision(9)).join(' ')).join('\n') + '\n';
    fs.writeFileSync(path.join(__dirname, name + '.numbers'), text);
    fs.writeFileSync(path.join(__dirname, name + '.json'), JSON.stringify(model.toJSON(null, false), null, 1) + '\n');
    console.log(name, named.map(full).join(' '));
  }
})();
