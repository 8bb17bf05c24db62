<?php

namespace Shop;

if (! function_exists('Shop\collect')) {
    function collect($value = null)
    {
        return $value;
    }
}

class Batch
{
    public function catch($callback)
    {
        return $this;
    }

    public function array(): array
    {
        return array(1);
    }
}
