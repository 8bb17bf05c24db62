interface Constructor {
  new (...args: any[]): unknown;
  (call: string): void;
  name(): string;
}

export class Store {
  private static plugins = observable.map<
    Hook,
    Observable<Hook>
  >();

  byId = (id: string): Share | undefined =>
    find(this.data, (share) => share.id === id);

  children = async (
    where?: Options<Document>
  ): Promise<Document[]> =>
    await (this.constructor as typeof Document).findAll({
      where,
    });

  last(): void {}
}
