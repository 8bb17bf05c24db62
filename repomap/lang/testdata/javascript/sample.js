#!/usr/bin/env node
'use strict';
const fs = require('fs');
const { a, b } = fs;
let counter = 0, other = 1;

/* function notThis() {} */
export default async function main(argv, { deep = 1 } = {}) {
  function local() {}
  const text = `template ${argv.map((x) => `inner ${x} }`).join("}")} function no() {`;
  return /[/"'{]+/.test(text) / 2;
}

export const arrow = async (x, y = {}) => {
  const hidden = 1;
};
const short = x => x * 2
const old = function named(a) { return a }

export class Shop extends Base {
  static count = 0;
  #secret = 1;
  handler = (event) => { this.#run(event) };

  constructor(name) { super(name); }
  get name() { return this._name }
  static async *items(list) {
    for (const x of list) { if (x) { yield x } }
  }
  #run(e) {}
  'quoted'() {}
}

function* generator() {}
exports.direct = function (x) { return x };
module.exports.fromHere = (x) => x;
Shop.prototype.added = function (y) {};
Shop.version = '1';
module.exports = { Shop };
exports.VALUE = 3;
if (counter) { function inner() {} }
const last = () => <div className="x">Don't</div>

exports.made = make({});
exports.handed = other.thing;
