// Stands for packages of the extension that are not needed here.
module.exports = {};
