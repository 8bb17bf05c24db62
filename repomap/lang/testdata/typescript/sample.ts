import { x } from './x'
export interface Shape<T = { a: number }> extends Base {
  readonly name: string
  area(scale?: number): number
  render?(): void;
  [key: string]: unknown
}
export type Point = { x: number; y: number }
type Fn<T> = (a: T) => void
export enum Color { Red, Green = 'g' }
declare const enum Flags { A }
export abstract class Shop<T extends { id: string }> extends Base<T> implements Shape {
  private readonly items: Map<string, { a: number }> = new Map()
  constructor(private name: string, public age?: number) { super() }
  @decorated()
  public async sell(item: T): Promise<{ ok: boolean }> {
    const type = 1
    return { ok: true }
  }
  abstract area(): number
  static of<K>(this: void, k: K): Shop<K> { return null! }
  handler = async (e: Event): Promise<void> => { }
  get total(): number { return 1 }
  declare field: string
}
export namespace Inner.Deep {
  export function helper(a: string): { a: number } | null { return null }
  export const value = 3
}
export function over(a: string): void
export function over(a: number): void
export function over(a: any): asserts a is string {
}
export const create = <T,>(a: T, b: number): Promise<T> => { return null }
export const config: Config = { type: 'x', interface: 1 }
let type = 3
type = 4
declare module 'foo' {
  export function inModule(): void
}
declare global { interface Window { x: number } }
export default class extends Shop<any> { run() { } }
