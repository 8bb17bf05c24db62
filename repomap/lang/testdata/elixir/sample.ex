defmodule Shop.Basket do
  @moduledoc """
  def no, do: 1
  """
  use GenServer
  alias Shop.Item
  defstruct [:name, price: 0]
  @type id :: String.t()
  @callback sell(item :: Item.t()) :: :ok
  @spec add(t, Item.t()) :: t
  def add(basket, item, opts \\ []) when is_list(opts) do
    fn x -> x end
    "text #{Map.get(x, "def no")} "
  end
  def add(basket, nil), do: basket
  def empty?(b), do: b == []
  defp hidden(x) do
    c = ?"
    ~w(def no)a
    x
  end
  defmacro check(expr) do
    quote do
      def generated(x), do: unquote(expr)
    end
  end
  defmodule Inner do
    def deep, do: 1
  end
end
defprotocol Sell do
  def sell(x)
end
defimpl Sell, for: Shop.Basket do
  def sell(x), do: x
end
