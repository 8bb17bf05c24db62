declare const VERSION: string;
declare let counter: typeof VERSION
declare const config: typeof import('./config')
declare const enum Level { Low }
declare abstract class Base { run(): void }
declare module 'shop' { export const basket: typeof VERSION }
export declare const exported: { a: typeof VERSION };
type Of = typeof VERSION
type Result = ReturnType<typeof build>;
type Keys = {
  [K in keyof typeof config]: (typeof config)[K];
};
function build<T extends typeof Base>(x: typeof VERSION): typeof x { return x }
export const arrow = (a: typeof VERSION): typeof a => a
const holder: { get: typeof build; set?(x: typeof VERSION): void } = { get: build }
class Shop extends (Other as typeof Base) {
  prop!: typeof VERSION
  static handler: typeof build = build
  first(x: typeof this.prop): typeof x { return x }
  private readonly table: Map<string, typeof build> = new Map()
  last() {}
}
interface Face {
  prop: typeof VERSION
  method(a: typeof build): typeof config
}
const asked = typeof build === 'function' ? build : typeof Shop
export function end() {}
