package proc

var refusedLegacyCalls []systemCall
