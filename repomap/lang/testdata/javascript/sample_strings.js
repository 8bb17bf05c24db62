// Code in strings in code, and classes that are values.
class Writer {
	generate() {
		const parts = [
			`${name} = ${JSON.stringify(value.replace(/"/g, '""'))};`,
			`${list.map(x => `${x} { ${x ? `${open('`')}` : '}'} ${/[`}]/.test(x)}`)}`,
			'} else {'
		];
		return parts;
	}

	short = (x) =>
		filter(x, (y) => y.ok);

	long = compute(
		a
	) ||
		other(b);

	after() {}
}

Writer.Template = class WriterTemplate extends Base {
	apply(x) {}
};

const make = (depth) =>
	function inner(data) {
		return data;
	};

module.exports = class Factory extends Base {
	create() {}
};

const FIRST = "a", // some words
	SECOND = "b",
	third = (x) => x,
	fs = require("fs");
